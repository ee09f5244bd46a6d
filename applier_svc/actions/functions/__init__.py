"""The functions of the product, one file for each."""
