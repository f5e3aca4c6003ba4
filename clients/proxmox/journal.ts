import type { PlatformEffect, PlatformEffectEnding, PlatformEffectRow } from '../../domain/platform.ts'

/** Survives the process that wrote it. */
export type Journal = {
  get(key: string): Promise<PlatformEffectRow | null>
  /** True for exactly one caller: that one, and nobody else, may send it. */
  begin(effect: PlatformEffect): Promise<boolean>
  noteTask(key: string, task: string): Promise<void>
  /** The first ending stays. */
  end(key: string, ending: PlatformEffectEnding): Promise<void>
}
