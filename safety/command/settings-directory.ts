/** Stands for the directory of the executor that holds settings for clients: it knows where that is. */
export const settingsDirectory = '{settings}'
