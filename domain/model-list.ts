import { z } from 'zod'
import { modelAbilities } from './chat.ts'
import { storedPassport } from './passport.ts'
import { count } from './status.ts'

/**
 * How a model is called, as declared. `auto` uses tool calls if the model supports them. A run
 * keeps its first form.
 */
const modelProtocol = z.enum(['auto', 'native', 'json'])

export type ModelProtocol = z.infer<typeof modelProtocol>

/**
 * The models that the workers know, without keys, and which runs use each according to the
 * settings.
 */
export const modelList = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      server: z.string(),
      model: z.string(),
      /** Models that replace this model, in order. */
      fallbacks: z.array(z.string()),
      /**
       * Whether the model is called with tool calls, the JSON protocol, or either. Null if an older
       * worker did not report it.
       */
      protocol: modelProtocol.nullable(),
      abilities: modelAbilities,
      windowTokens: count.nullable(),
      windowSource: z.string().nullable(),
      learned: z.array(z.string()),
      passport: storedPassport.nullable(),
      /**
       * The end of the time for which the model counts as unavailable. Until then runs use its
       * fallbacks.
       */
      awayUntil: z.string().nullable(),
    }),
  ),
  routes: z.array(
    z.object({
      /** The key of the setting. */
      key: z.string(),
      model: z.string(),
      /** False if no such model is declared, so the default model is used. */
      isDeclared: z.boolean(),
    }),
  ),
})

export type ModelList = z.infer<typeof modelList>
