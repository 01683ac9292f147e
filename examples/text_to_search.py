"""Texts in, answers out: encode, fit, index with titles and metadata, search with a filter, add, remove.

python text_to_search.py            (needs the extra encode)
"""

from adawidth import AdaWidth
from adawidth.encoders import load_encoder

NOTES = {
    "lamp": ("Desk lamp", "A small lamp for reading at night.", {"room": "study", "price": 30}),
    "umbrella": ("Umbrella", "Keeps you dry when it rains.", {"room": "hall", "price": 15}),
    "kettle": ("Kettle", "Boils water for tea in two minutes.", {"room": "kitchen", "price": 25}),
    "boots": ("Rubber boots", "For puddles, mud and wet gardens.", {"room": "hall", "price": 40}),
    "scale": ("Kitchen scale", "Weighs flour and sugar for baking.", {"room": "kitchen", "price": 20}),
}


def main() -> None:
    encoder = load_encoder("wordllama")  # comes with the extra; any other encoder that docs/encoding.md lists will do
    titles, texts, metadata = zip(*NOTES.values(), strict=True)
    vectors = encoder.encode([f"{title} {text}" for title, text in zip(titles, texts, strict=True)], "document")
    model = AdaWidth.fit(vectors)
    index = model.index(vectors, ids=list(NOTES), titles=titles, texts=texts, metadata=metadata)

    for question in ("something against the rain", "I would like a cup of tea"):
        (answer,) = index.search(encoder.encode([question], "query"), k=2)
        print(question, "->", [(hit.title, round(hit.score, 2)) for hit in answer])

    (answer,) = index.search(encoder.encode(["something against the rain"], "query"), k=2, where="room = 'hall' AND price < 20")
    print("in the hall, under 20:", [hit.title for hit in answer])

    index.add(encoder.encode(["Raincoat Yellow, with a hood."], "document"), ["coat"], titles=["Raincoat"], metadata=[{"room": "hall"}])
    (answer,) = index.search(encoder.encode(["a yellow coat"], "query"), k=1)
    print("after adding one:", answer[0].title)
    index.remove(["coat"])


if __name__ == "__main__":
    main()
