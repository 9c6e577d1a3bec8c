"""The report as one page that anybody can open: what was checked, the graph, and what it costs at every size."""
