import { z } from 'zod'

/** The first input of a model, as it is shown to people. */
export const shownPrompt = z.object({
  /** The system prompt. */
  system: z.string(),
  tools: z.array(z.looseObject({})),
  /** Names of the tools that `more_tools` adds. */
  more: z.array(z.string()),
  /** The incident as the model reads it; null if no incident was given. */
  context: z.string().nullable(),
  /** The runbook, and the names of others, as the model reads them; null if none fits. */
  runbooks: z.string().nullable(),
  bytes: z.object({
    system: z.number().int(),
    tools: z.number().int(),
    /** Tokens of the system prompt and the tools, which every first turn costs. */
    first: z.number().int(),
    context: z.number().int(),
    runbooks: z.number().int(),
  }),
})
