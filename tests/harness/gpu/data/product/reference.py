def reference(inputs, axes):
    return {"y": inputs["a"].double() @ inputs["b"].double()}
