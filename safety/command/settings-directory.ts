/** Stands for the executor's directory of client settings: it knows where that is. */
export const settingsDirectory = '{settings}'
