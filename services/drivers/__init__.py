"""One folder for each driver, and the code that all drivers share; docs/drivers.md says how to add a driver."""
