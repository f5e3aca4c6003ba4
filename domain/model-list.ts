import { z } from 'zod'
import { modelAbilities } from './chat.ts'
import { storedPassport } from './passport.ts'
import { count } from './status.ts'

/**
 * The way in which a model proposes calls, as declared. `auto` uses tool calls if the model
 * supports them. A run keeps the way with which it began.
 */
const modelProtocol = z.enum(['auto', 'native', 'json'])

export type ModelProtocol = z.infer<typeof modelProtocol>

/**
 * The models that the workers know, without keys, and the model that each kind of run uses
 * according to the settings.
 */
export const modelList = z.object({
  items: z.array(
    z.object({
      name: z.string(),
      server: z.string(),
      model: z.string(),
      /** Names of the models that replace this model when it fails, in order. */
      fallbacks: z.array(z.string()),
      /**
       * Whether the model is called with tool calls, with the JSON protocol, or with either. Null
       * if an older worker did not report this.
       */
      protocol: modelProtocol.nullable(),
      abilities: modelAbilities,
      windowTokens: count.nullable(),
      windowSource: z.string().nullable(),
      learned: z.array(z.string()),
      passport: storedPassport.nullable(),
      /**
       * The time until which the model counts as unavailable. Until then, runs use its fallbacks.
       */
      awayUntil: z.string().nullable(),
    }),
  ),
  routes: z.array(
    z.object({
      /** The key of the setting that names the model. */
      key: z.string(),
      model: z.string(),
      /** False if no model with this name is declared, so that runs use the default model. */
      isDeclared: z.boolean(),
    }),
  ),
})

export type ModelList = z.infer<typeof modelList>
