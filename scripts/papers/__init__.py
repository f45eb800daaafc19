"""Tables and figures of three papers: what follows from their numbers and from results of `andrew-lab`, and the pages that show both."""
