import { readServedModel } from '../clients/chat/window.ts'
import { baseUrlOf, type ShapeMemory, serverName } from '../clients/model.ts'
import type { Db } from '../db/connect.ts'
import {
  claimReading,
  keepAbilities,
  keepAnsweredAs,
  keepRefusedWindow,
  keepShape,
  type ModelProfile,
  modelProfile,
  storeServedModel,
} from '../db/models/profiles.ts'
import { plainShape } from '../domain/chat.ts'

/** The server of a model, with what all workers know of it. */
export type ServedModels = {
  /** Its address without credentials, by which rows name it. */
  server: string
  /** The facts known now; asks the server where that is due. */
  profile(model: string): Promise<ModelProfile>
  noteRefusedWindow(model: string, tokens: number): Promise<void>
  memory: ShapeMemory
}

type Log = { warn(fields: object, message: string): void }

/**
 * Stores what is learned of the model's server in rows, so that one worker's refused request
 * teaches all.
 */
export function servedModels(db: Db, given: { baseUrl: string; apiKey: string }, log: Log): ServedModels {
  const baseUrl = baseUrlOf(given.baseUrl)
  const server = serverName(baseUrl)
  const noted = new Set<string>()
  /** The name that each gave itself in its last answer, as this worker wrote it. */
  const names = new Map<string, string>()
  return {
    server,
    async profile(model) {
      const key = { server, model }
      const known = await modelProfile(db, key)
      if (!known.isDue) return known
      // One asks for all; only what nobody has ever read is worth a second question.
      if (!(await claimReading(db, key)) && known.isRead) return known
      const served = await readServedModel({ baseUrl, apiKey: given.apiKey, model })
      if (served === null) return known
      await storeServedModel(db, key, served)
      return await modelProfile(db, key)
    },
    noteRefusedWindow: (model, tokens) => keepRefusedWindow(db, { server, model }, tokens),
    memory: {
      async recall(model) {
        try {
          return (await modelProfile(db, { server, model })).shape
        } catch (error) {
          log.warn({ err: error }, 'what is known of the model server could not be read')
          return plainShape
        }
      },
      async keep(model, shape) {
        try {
          await keepShape(db, { server, model }, shape)
          log.warn(
            { server, model, shape },
            'the model server wants its requests otherwise, and gets them so from now on',
          )
        } catch (error) {
          log.warn({ err: error }, 'what was learned of the model server could not be kept')
        }
      },
      async note(model, seen) {
        // Each is written once by each worker: every answer shows the same.
        const fresh = Object.entries(seen).filter((each) => !noted.has(`${model} ${each.join()}`))
        if (fresh.length === 0) return
        try {
          await keepAbilities(db, { server, model }, Object.fromEntries(fresh))
          for (const each of fresh) noted.add(`${model} ${each.join()}`)
        } catch (error) {
          log.warn({ err: error }, 'what an answer showed of the model server could not be kept')
        }
      },
      async name(model, answeredAs) {
        if (names.get(model) === answeredAs) return
        try {
          await keepAnsweredAs(db, { server, model }, answeredAs.slice(0, maxNameCharacters).toWellFormed())
          names.set(model, answeredAs)
        } catch (error) {
          log.warn({ err: error }, 'the name by which the model answered could not be kept')
        }
      },
    },
  }
}

const maxNameCharacters = 300
