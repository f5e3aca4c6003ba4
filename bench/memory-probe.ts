import type { Worker } from 'node:worker_threads'

/**
 * Loaded into the measured process (`--import`): answers `memory` over its IPC channel with the
 * parts of its memory. Workflows run in threads with separate heaps, which `process.memoryUsage()`
 * misses.
 */
export type MemoryUse = {
  residentMb: number
  /** Heap of the main thread: activities, the database driver, the SDK. */
  mainUsedMb: number
  mainHeldMb: number
  /** Heaps of the other threads: the workflows in the cache, with the bundle they share. */
  threadsUsedMb: number
  threadsHeldMb: number
  /** Buffers that heaps point to. */
  externalMb: number
  /** All that V8 does not know of: the SDK's core, allocator, code of the program. */
  otherMb: number
}

const threads = new Set<Worker>()
process.on('worker', (thread) => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})
process.on('message', async (message) => {
  if (message === 'memory') process.send?.(await memory())
})
// A listener must not keep the process from ending.
process.channel?.unref()

async function memory(): Promise<MemoryUse> {
  const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
  const heaps = await Promise.all([...threads].map((thread) => thread.getHeapStatistics()))
  const sum = (of: (heap: (typeof heaps)[number]) => number) => heaps.reduce((total, heap) => total + of(heap), 0)
  const held = sum((heap) => heap.total_physical_size)
  const buffers = external + sum((heap) => heap.external_memory)
  return {
    residentMb: megabytes(rss),
    mainUsedMb: megabytes(heapUsed),
    mainHeldMb: megabytes(heapTotal),
    threadsUsedMb: megabytes(sum((heap) => heap.used_heap_size)),
    threadsHeldMb: megabytes(held),
    externalMb: megabytes(buffers),
    otherMb: megabytes(rss - heapTotal - held - buffers),
  }
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 1_048_576)
}
