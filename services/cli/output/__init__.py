"""What commands print: text, data, errors, exit statuses."""
