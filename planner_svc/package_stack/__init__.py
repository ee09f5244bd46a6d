"""Changes of the packages of a stack, from a request to the desired state of a plan."""
