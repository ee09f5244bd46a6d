"""What an apply changes: differences, and the steps that remove them."""
