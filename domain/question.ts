/** The incident type of a person's question: it takes no other's slot, and ends answered. */
export const questionType = 'question'
