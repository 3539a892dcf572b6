"""What every account needs so that nothing is ordered twice and nothing is billed unseen; knows no vendor."""
