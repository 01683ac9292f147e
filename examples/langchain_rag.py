"""Retrieval for a language model, with LangChain, up to the prompt: the context is retrieved and shown. Bring your own generator.

python langchain_rag.py ["your question"]           (needs the extras encode and langchain)
"""

import sys

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

from adawidth import bundled, load_dataset
from adawidth.encoders import load_encoder
from adawidth.integrations.langchain import AdaWidthVectorStore, IndexEmbeddings

PROMPT = ChatPromptTemplate.from_template("Answer from the context alone.\n\nContext:\n{context}\n\nQuestion: {question}")


def together(documents: list[Document]) -> str:
    return "\n\n".join(f"[{document.id}] {document.page_content[:300]}" for document in documents)


def main(question: str = "How do I find the middle value of a list of numbers?") -> None:
    texts = {str(name): text for name in load_dataset(bundled.path()).documents.ids if (text := bundled.text_of(str(name)))}
    modules = [{"module": name.partition(".")[0]} for name in texts]
    store = AdaWidthVectorStore.from_texts(list(texts.values()), IndexEmbeddings(load_encoder("wordllama")), modules, ids=list(texts))
    retriever = store.as_retriever(search_kwargs={"k": 3, "filter": "module != 'numpy'"})

    chain = {"context": retriever | together, "question": RunnablePassthrough()} | PROMPT  # | your_language_model
    print(chain.invoke(question).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
