"""A bundle as a web service: DISSENSUS_MODEL=model uvicorn serve_fastapi:app; lines with a number are what it takes."""

import os

from fastapi import FastAPI, HTTPException

import dissensus as dis

model = dis.load_model(os.environ.get("DISSENSUS_MODEL", "model"))  # 1
app = FastAPI(title=str(model))


@app.post("/predict")
def predict(texts: list[str]) -> list[dict[str, float]]:
    """How people's answers to each text would spread, by class."""
    try:
        said = model.predict_proba(texts)  # 2
    except dis.InputError as error:
        raise HTTPException(422, str(error)) from error
    return [dict(zip(model.classes, row, strict=True)) for row in said.tolist()]  # 3


@app.get("/predict")
def predict_one(text: str) -> dict[str, float]:
    """The same for one text."""
    return predict([text])[0]
