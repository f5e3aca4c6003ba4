/**
 * Milliseconds that a check may take once the process is stopping. The time is short, because any
 * worker can repeat a check.
 */
const lookGraceMs = 1_000
/**
 * Milliseconds that sending a message may take once the process is stopping. The time is longer,
 * because another worker would send the message twice.
 */
export const messageGraceMs = 10_000

export const givenBack = Symbol('given back')

/**
 * Waits for running work. Once the process is stopping, waits only `graceMs`; then the caller
 * releases its claims.
 */
export async function unlessStopping<T>(
  work: Promise<T>,
  stopping: AbortSignal,
  graceMs = lookGraceMs,
): Promise<T | typeof givenBack> {
  let timer: NodeJS.Timeout | undefined
  let begin = () => {}
  const late = new Promise<typeof givenBack>((resolve) => {
    begin = () => {
      timer = setTimeout(() => resolve(givenBack), graceMs)
    }
  })
  if (stopping.aborted) begin()
  else stopping.addEventListener('abort', begin, { once: true })
  // Ignores a late failure, because nobody waits for the result any more.
  work.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    stopping.removeEventListener('abort', begin)
  }
}
