"""What the tests of the service share: a key, and what the small index behind it holds."""

KEY = "a key for tests only"
THINGS = {
    "lamp": "A small lamp gives light for reading in bed.",
    "umbrella": "An umbrella keeps you dry when it rains.",
    "engine": "The engine of a car burns petrol.",
    "bread": "Bread is baked from flour, water and yeast.",
}
FILL = 560  # other documents
