/** Placeholder for the directory in which the executor has settings of clients. */
export const settingsDirectory = '{settings}'
