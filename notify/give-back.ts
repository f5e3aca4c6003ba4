/**
 * Milliseconds that a check may still take once the process is stopping. Short, because any worker
 * can repeat a check.
 */
const lookGraceMs = 1_000
/**
 * Milliseconds that sending a message may still take once the process is stopping. Longer, because
 * another worker would send the message twice.
 */
export const messageGraceMs = 10_000

export const givenBack = Symbol('given back')

/**
 * Waits for running work. Once the process is stopping, waits only `graceMs`. Then returns
 * `givenBack`, and the caller releases the work for other workers.
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
  // Ignores a failure after the wait is over, because nobody reads the result any more.
  work.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    stopping.removeEventListener('abort', begin)
  }
}
