const OPEN = '<think>';
const CLOSE = '</think>';
/** White space allowed before the first tag. */
const LEAD_CHARS_MAX = 8;

/** A piece of text, with its kind by the tags around it. */
export interface ThinkRun {
  is_reasoning: boolean;
  text: string;
}

/** Splits text at think tags, which may themselves be split anywhere. Holds back at most a tag's beginning. */
export interface ThinkSplitter {
  push(text: string): ThinkRun[];
  /** The text held back as a possible tag. */
  end(): ThinkRun[];
}

/**
 * A splitter for content that starts with reasoning in think tags (DeepSeek-R1 and Qwen behind hosts that do not split them).
 * Tags later in the text are text: a model may write about them.
 */
export function createThinkSplitter(): ThinkSplitter {
  let state: 'start' | 'thinking' | 'text' = 'start';
  let held = '';

  function push(text: string): ThinkRun[] {
    if (state === 'text') return run(false, text);
    const whole = held + text;
    held = '';
    if (state === 'start') {
      const begun = whole.trimStart();
      if (begun.startsWith(OPEN)) {
        state = 'thinking';
        return push(begun.slice(OPEN.length));
      }
      if (OPEN.startsWith(begun) && whole.length - begun.length <= LEAD_CHARS_MAX) {
        held = whole;
        return [];
      }
      state = 'text';
      return run(false, whole);
    }
    const close = whole.indexOf(CLOSE);
    if (close !== -1) {
      state = 'text';
      return [...run(true, whole.slice(0, close)), ...run(false, whole.slice(close + CLOSE.length))];
    }
    const kept = tagBeginning(whole, CLOSE);
    held = whole.slice(whole.length - kept);
    return run(true, whole.slice(0, whole.length - kept));
  }

  return {
    push,
    end() {
      const rest = held;
      held = '';
      return run(state === 'thinking', rest);
    },
  };
}

/** A filter that removes literal think tags from reasoning (Groq's compound systems). */
export function createThinkStripper(): { push(text: string): string; end(): string } {
  let held = '';
  return {
    push(text) {
      let whole = (held + text).replaceAll(OPEN, '').replaceAll(CLOSE, '');
      const kept = Math.max(tagBeginning(whole, OPEN), tagBeginning(whole, CLOSE));
      held = whole.slice(whole.length - kept);
      whole = whole.slice(0, whole.length - kept);
      return whole;
    },
    end() {
      const rest = held;
      held = '';
      return rest;
    },
  };
}

function run(isReasoning: boolean, text: string): ThinkRun[] {
  return text === '' ? [] : [{ is_reasoning: isReasoning, text }];
}

/** How many characters at the end of the text may begin the tag. */
function tagBeginning(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(text.length - length))) return length;
  }
  return 0;
}
