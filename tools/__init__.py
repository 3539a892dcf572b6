"""What measures the product and what tries to break it."""
