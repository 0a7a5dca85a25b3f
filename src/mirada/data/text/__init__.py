"""From files of text to batches: read into a table, looked at, split, cut into tokens, and handed out as batches.

table = open_text("en_es_train.tsv.gz")              lines, pairs or labelled texts
print(render_text(inspect_text(table)))              what is odd about it
split = split_text(table, val=0.1, test=0.1, seed=0)
"""
