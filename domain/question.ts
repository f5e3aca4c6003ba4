/**
 * The incident type of a person's question. A question uses no slot of other incidents, and ends as
 * answered.
 */
export const questionType = 'question'
