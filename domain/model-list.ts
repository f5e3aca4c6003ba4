import { z } from 'zod'
import { modelAbilities } from './chat.ts'
import { storedPassport } from './passport.ts'
import { count } from './status.ts'

/** The declared form: `auto` takes tool calls where the model can; a run keeps its first form. */
const modelProtocol = z.enum(['auto', 'native', 'json'])

export type ModelProtocol = z.infer<typeof modelProtocol>

/** The models that the workers know, without keys, and which runs the settings give to which. */
export const modelList = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      server: z.string(),
      model: z.string(),
      /** Models that stand in for it, in order. */
      fallbacks: z.array(z.string()),
      /** The form of asking: tool calls, the JSON protocol, or either. Null: an older worker. */
      protocol: modelProtocol.nullable(),
      abilities: modelAbilities,
      windowTokens: count.nullable(),
      windowSource: z.string().nullable(),
      learned: z.array(z.string()),
      passport: storedPassport.nullable(),
      /** It did not answer: until then runs ask who stands in for it. */
      awayUntil: z.string().nullable(),
    }),
  ),
  routes: z.array(
    z.object({
      /** The setting. */
      key: z.string(),
      model: z.string(),
      /** Else the default is asked. */
      isDeclared: z.boolean(),
    }),
  ),
})

export type ModelList = z.infer<typeof modelList>
