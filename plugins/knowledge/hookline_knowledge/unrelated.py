"""Questions and passages that have nothing to do with each other, for measuring an embedder."""

QUESTIONS = (
    "How do I bake sourdough bread?",
    "Who won the football world cup in 2014?",
    "What is the capital of Australia?",
    "How do I reset my password?",
    "Tell me a joke about cats",
    "Which vitamins are in spinach?",
    "What should I wear to a wedding?",
    "Translate 'good morning' into Spanish",
    "When does the supermarket open on Sunday?",
    "What is the plot of Romeo and Juliet?",
    "How do I change a bicycle tyre?",
    "Write a poem about autumn leaves",
    "What are the symptoms of the flu?",
    "How much is the refund for a cancelled order?",
    "What is a good name for a puppy?",
    "How do I learn to play the guitar?",
    "What is the best way to remove a wine stain?",
    "How many days of holiday do employees get?",
    "Who painted the Mona Lisa?",
    "What does a notary do?",
    "How long do I have to boil an egg?",
    "Is there a train to the airport at night?",
    "What is the minimum wage?",
    "Which insurance covers a broken window?",
)
"""What people ask."""

PASSAGES = (
    "Plants take up carbon dioxide through pores in their leaves. In the light it is turned into "
    "sugar, and oxygen is set free.",
    "A transaction is written to the log before its pages change. After a crash the database "
    "reads the log again and repairs what was half done.",
    "The lift of a thin wing grows with the angle of attack until the flow separates from its "
    "upper surface, and then it drops.",
    "Basalt comes from lava that is rich in iron and poor in silica. It cools into columns with "
    "six sides.",
    "The machine is written off over eight years in equal parts. What is left after that is its "
    "residual value.",
    "The valve between the left atrium and the left ventricle has two leaflets, which are held by "
    "tendons.",
    "Containers are stacked by weight, the heaviest below. Lashing rods keep them from sliding "
    "when the ship rolls.",
    "A satellite in a geostationary orbit is 35,786 kilometres above the equator and stays over "
    "one place.",
    "The monks copied books by hand. A scribe needed about a year for a Bible, and parchment cost "
    "more than his work.",
    "White gives up a pawn to gain time for its pieces. Black can decline and keep a solid "
    "position in the centre.",
    "The insulation is laid without gaps between the rafters. A foil on the warm side keeps damp "
    "air out of it.",
    "Bees tell each other where nectar is by a dance, whose angle to the vertical is the angle to "
    "the sun.",
    "The warp threads are stretched on the loom, and the shuttle carries the weft between them.",
    "A message is signed with the private key. Everybody who has the public one can check it.",
    "The glacier has lost two metres of thickness a year since it has been measured, most of it "
    "in July.",
    "Concrete reaches its strength after 28 days. In frost it has to be covered, as water in it "
    "would freeze.",
)
"""What documents say, of subjects that no question is about."""
