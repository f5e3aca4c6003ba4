import type { Worker } from 'node:worker_threads'

/**
 * The memory of a process by parts. The measured process loads this module (`--import`), which
 * replies to `memory` on the IPC channel. Workflows run in threads with separate heaps, which
 * `process.memoryUsage()` does not include.
 */
export type MemoryUse = {
  residentMb: number
  /** The used heap of the main thread: activities, the database driver, the SDK. */
  mainUsedMb: number
  mainHeldMb: number
  /**
   * The used heaps of the other threads: the workflows in the cache, with the bundle that they
   * share.
   */
  threadsUsedMb: number
  threadsHeldMb: number
  /** Memory of buffers outside of the heaps, to which the heaps refer. */
  externalMb: number
  /** Memory outside of V8: the SDK's core, the allocator, the program's code. */
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
// Lets the process end although it listens on the channel.
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
