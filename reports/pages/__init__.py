"""Pages made of sections: a few sentences, a picture, tables; no script, no request to anywhere."""

# In: a result. Out: one HTML page, short before anything is unfolded.
