"""What joins actors and store for one boss."""
