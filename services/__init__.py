"""What the four services stand on: the core, the kinds, the plumbing, the drivers and the command line."""
