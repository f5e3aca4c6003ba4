import { z } from 'zod'

/** What a model is given first, as people are shown it. */
export const shownPrompt = z.object({
  /** The system prompt. */
  system: z.string(),
  tools: z.array(z.looseObject({})),
  /** Names of what `more_tools` adds. */
  more: z.array(z.string()),
  /** The incident as the model reads it; null where no incident was named. */
  context: z.string().nullable(),
  /** The runbook and the names of others, as the model reads them; null where none fits. */
  runbooks: z.string().nullable(),
  bytes: z.object({
    system: z.number().int(),
    tools: z.number().int(),
    /** System prompt and tools: what every first turn costs. */
    first: z.number().int(),
    context: z.number().int(),
    runbooks: z.number().int(),
  }),
})
