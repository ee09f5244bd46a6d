"""The commands: names, options and help. Functions import the modules that they need, so that help is quick."""
