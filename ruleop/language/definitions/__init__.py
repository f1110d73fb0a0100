"""The CustomResourceDefinition that the key `schema` of a watch stands for, and the status that ruleop writes."""
