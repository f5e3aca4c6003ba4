/**
 * The incident type of a person's question. Such an incident uses no slot of other incidents, and
 * ends as answered.
 */
export const questionType = 'question'
