/**
 * The shortest good run of each scenario that was measured: the rule table's, with a person who approves. `turns` are answers of the model,
 * `path` the tools in the order in which they ran. `npm run eval -- least FILE` writes the table from a file of results.
 */
export const goodRuns: Record<string, { turns: number; path: string[] }> = {}
