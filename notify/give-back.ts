/** A look can be made again by anybody. */
const lookGraceMs = 1_000
/** A message that another worker tells too arrives twice: a receiver takes it in this time. */
export const messageGraceMs = 10_000

export const givenBack = Symbol('given back')

/**
 * Waits for work under way; once the process is to end, only this long: then the caller gives back
 * what it holds.
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
  // After that nobody waits for what it comes to.
  work.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    stopping.removeEventListener('abort', begin)
  }
}
