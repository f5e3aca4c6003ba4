import { stripText } from '../../safety/strip.ts'

const longestLine = 4_000

/** Bytes of both outputs, up to a limit for both together; lines are told as they come. */
export type Output = {
  /** False once the limit is reached: what came over it is dropped. */
  take(stream: 'stdout' | 'stderr', bytes: Uint8Array): boolean
  /** What is left of the last lines. */
  end(): void
  text(stream: 'stdout' | 'stderr'): string
  readonly truncated: boolean
}

export function collect(limitBytes: number, onLine: ((line: string) => void) | null): Output {
  const chunks = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const lines = { stdout: lineReader(onLine), stderr: lineReader(onLine) }
  let left = limitBytes
  let truncated = false
  return {
    take(stream, bytes) {
      if (truncated) return false
      const kept = bytes.length > left ? bytes.subarray(0, left) : bytes
      left -= kept.length
      truncated = kept.length < bytes.length
      chunks[stream].push(kept)
      lines[stream].take(kept)
      return !truncated
    },
    end() {
      lines.stdout.end()
      lines.stderr.end()
    },
    text: (stream) => plain(Buffer.concat(chunks[stream])),
    get truncated() {
      return truncated
    },
  }
}

/** Text of whatever bytes: what is no UTF-8 becomes U+FFFD, and what a terminal would obey or nobody would see is gone. */
export function plain(bytes: Uint8Array): string {
  return stripText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
}

function lineReader(onLine: ((line: string) => void) | null) {
  if (!onLine) return { take: () => undefined, end: () => undefined }
  const decoder = new TextDecoder('utf-8')
  let open = ''
  const tell = (line: string) => onLine(stripText(line.slice(0, longestLine), { keepNewlines: false }))
  return {
    take(bytes: Uint8Array) {
      open += decoder.decode(bytes, { stream: true })
      const parts = open.split('\n')
      open = parts.pop() ?? ''
      for (const line of parts) tell(line)
      // A line without an end is told in pieces, so that it neither waits nor grows.
      while (open.length > longestLine) {
        tell(open)
        open = open.slice(longestLine)
      }
    },
    end() {
      open += decoder.decode()
      if (open !== '') tell(open)
      open = ''
    },
  }
}
