"""May a model take a person's place among annotators?"""
