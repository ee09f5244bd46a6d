"""What can be typed: names, options, help. Bodies import what they need, so that help is quick."""
