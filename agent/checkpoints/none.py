"""No checkpoints: of a program that writes none. A run that ends early starts over."""

from agent.checkpoints import Checkpoints

Format = Checkpoints
