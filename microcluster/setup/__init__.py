"""What has to be installed on this computer."""
