import { z } from 'zod'
import { modelAbilities } from './chat.ts'
import { storedPassport } from './passport.ts'
import { count } from './status.ts'

/** As a declaration says it: `auto` takes tool calls where the model can, and a run keeps what it began with. */
const modelProtocol = z.enum(['auto', 'native', 'json'])

export type ModelProtocol = z.infer<typeof modelProtocol>

/** The models that the workers know, without keys, and which runs the settings give to which. */
export const modelList = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      server: z.string(),
      model: z.string(),
      /** Who stands in for it, in order. */
      fallbacks: z.array(z.string()),
      /** How it is asked: tool calls, the JSON protocol, or whichever it can. Null: its worker is of an older release. */
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
