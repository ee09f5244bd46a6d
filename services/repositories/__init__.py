"""Files of repositories of packages, from bytes to values and back, and folders of such files."""
