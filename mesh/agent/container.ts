import { z } from 'zod'
import { stripText } from '../../safety/strip.ts'
import { ask, type Engine } from './engine.ts'

/** A container by name or id; nothing that could be another path of the API. */
export const containerName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, 'is no container')

/** An engine's own id, which goes into paths of its API and is looked for in control groups. */
export const engineId = z.string().regex(/^[0-9a-f]{64}$/, 'is no id')

/** A word of an engine on one line: what others may write there neither acts on a terminal nor looks like another line. */
export const word = (longest = 200) =>
  z.string().transform((text) => stripText(text, { keepNewlines: false }).slice(0, longest).toWellFormed())

const inspected = z.looseObject({
  Id: engineId,
  Name: word().default(''),
  Config: z.looseObject({ Tty: z.boolean().default(false) }),
})

export type Container = { id: string; name: string; terminal: boolean }

/** Looks a container up: its whole id, and whether its output comes in one stream. */
export async function containerOf(engine: Engine, name: string, signal: AbortSignal): Promise<Container> {
  const found = await ask(engine, { method: 'GET', path: pathOf(name) }, inspected, signal)
  return { id: found.Id, name: found.Name.replace(/^\//, ''), terminal: found.Config.Tty }
}

/** Where the engine tells of a container. */
export const pathOf = (name: string): string => `/containers/${encodeURIComponent(name)}/json`
