"""History that nobody lived through: of any size, with statistics and violations that are known beforehand."""
