import { z } from 'zod'
import { ask, type Engine } from './engine.ts'

/** A container by name or id; nothing that could be another path of the API. */
export const containerName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/, 'is no container')

export type Container = { id: string; name: string; terminal: boolean }

/** Looks a container up: its whole id, and whether its output comes in one stream. */
export async function containerOf(engine: Engine, name: string, signal: AbortSignal): Promise<Container> {
  const found = await ask<{ Id: string; Name: string; Config: { Tty: boolean } }>(
    engine,
    'GET',
    `/containers/${encodeURIComponent(name)}/json`,
    signal,
  )
  return { id: found.Id, name: found.Name.replace(/^\//, ''), terminal: found.Config.Tty }
}
