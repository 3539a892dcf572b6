"""Names that a configuration file of OpenSeq2Seq imports; each class carries its parameters and nothing else."""
