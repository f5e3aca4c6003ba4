/** What a person asks is an incident of this type: it takes no slot of the others, and ends with an answer. */
export const questionType = 'question'
