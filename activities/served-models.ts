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

/** A model server, with what all workers know of its models. */
export type ServedModels = {
  /** The server's address without credentials, by which rows name the server. */
  server: string
  /** Returns the known facts of a model; reads them from the server if they are outdated. */
  profile(model: string): Promise<ModelProfile>
  noteRefusedWindow(model: string, tokens: number): Promise<void>
  memory: ShapeMemory
}

type Log = { warn(fields: object, message: string): void }

/**
 * Stores facts of the model server in rows, so that a request which the server refused teaches all
 * workers.
 */
export function servedModels(db: Db, given: { baseUrl: string; apiKey: string }, log: Log): ServedModels {
  const baseUrl = baseUrlOf(given.baseUrl)
  const server = serverName(baseUrl)
  const noted = new Set<string>()
  /** The name that each model had in its last answer, as this worker wrote it. */
  const names = new Map<string, string>()
  return {
    server,
    async profile(model) {
      const key = { server, model }
      const known = await modelProfile(db, key)
      if (!known.isDue) return known
      // Lets one worker read the facts for all workers. Another worker reads them only if they were
      // never read.
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
          log.warn({ err: error }, 'the stored facts about the model server could not be read')
          return plainShape
        }
      },
      async keep(model, shape) {
        try {
          await keepShape(db, { server, model }, shape)
          log.warn(
            { server, model, shape },
            'the model server needs another form of request, and Nightshift uses that form from now on',
          )
        } catch (error) {
          log.warn({ err: error }, 'new facts about the model server could not be stored')
        }
      },
      async note(model, seen) {
        // Writes each fact once per worker, because every answer of the model shows the same facts.
        const fresh = Object.entries(seen).filter((each) => !noted.has(`${model} ${each.join()}`))
        if (fresh.length === 0) return
        try {
          await keepAbilities(db, { server, model }, Object.fromEntries(fresh))
          for (const each of fresh) noted.add(`${model} ${each.join()}`)
        } catch (error) {
          log.warn({ err: error }, 'facts from an answer of the model server could not be stored')
        }
      },
      async name(model, answeredAs) {
        if (names.get(model) === answeredAs) return
        try {
          await keepAnsweredAs(db, { server, model }, answeredAs.slice(0, maxNameCharacters).toWellFormed())
          names.set(model, answeredAs)
        } catch (error) {
          log.warn({ err: error }, 'the name in the answer of the model could not be stored')
        }
      },
    },
  }
}

const maxNameCharacters = 300
