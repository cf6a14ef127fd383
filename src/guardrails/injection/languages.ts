import { gap, one, type PhraseDraft, upTo } from './phrase.ts';

const IGNORE = 'ignore_previous_instructions';
const REVEAL = 'reveal_prompt';
const UNBOUND = 'remove_restrictions';

const german: readonly PhraseDraft[] = [
  {
    pattern: IGNORE,
    needs: 'ignorier|vergiss|vergess|missacht|umgeh|überschreib|verwirf|befolg|folge|beacht',
    phrases: [
      `${one('ignorieren?|ignorier|ignoriert|vergiss|vergesse[nt]?|missachten?|umgehen?|überschreiben?|verwirf')}${upTo(5, 'sie|bitte|einfach|jetzt|ab|sofort|nun|alle[nrs]?|sämtliche[nr]?|die|den|das|der|und|meine[nr]?|jegliche|komplett')}${one('vorherige[nrs]?|vorangegangene[nrs]?|vorangehende[nrs]?|vorige[nrs]?|bisherige[nrs]?|obige[nrs]?|frühere[nrs]?|vorhergehende[nrs]?|ursprüngliche[nrs]?|deine[nr]?|ihre[nr]?|gegebenen')}${gap(2)}${one('anweisung(?:en)?|instruktion(?:en)?|befehle?|regeln|vorgaben|richtlinien|prompts?|systemprompts?|systemanweisung(?:en)?|anleitungen|aufträge|einschränkungen|beschränkungen')}`,
      `${one('ignorieren?|ignorier|vergiss|vergesse[nt]?|missachten?')}${upTo(4, 'sie|bitte|einfach|jetzt|alle|sämtliche|die|deine|ihre')}${one('anweisungen|instruktionen|befehle|regeln|vorgaben|richtlinien|prompts?|systemanweisungen')}${upTo(1, 'von')} (?:oben|zuvor|davor|bisher|vorher|darüber)`,
      `${one('ignorieren?|ignorier|vergiss|vergesse[nt]?')}${upTo(2, 'sie|bitte|einfach|jetzt')} alles was${upTo(3, 'man|dir|du|ihnen|sie|bisher|vorher|zuvor')}${one('gesagt|gelernt|aufgetragen|befohlen|mitgeteilt|weißt|davor|oben')}`,
      `${one('befolge|folge|beachte')}${upTo(2, 'sie|bitte|ab|jetzt')} (?:nicht|keine|keinen)${upTo(3, 'mehr|den|die|deinen|der|vorherigen|bisherigen|obigen|früheren|ursprünglichen')} (?:anweisungen|instruktionen|regeln|vorgaben|richtlinien)`,
    ],
  },
  {
    pattern: REVEAL,
    needs: 'prompt|anweisung|systemnachricht|instruktion',
    phrases: [
      `${one('zeige?n?|verrate?n?|nenne?n?|gib|geben|offenbaren?|wiederholen?|drucke|schreibe?|sage?|enthülle?n?|was (?:ist|sind)|wie lautete?n?')}${upTo(3, 'mir|uns|bitte|sie|jetzt|genau|wörtlich|vollständig')} (?:dein(?:en?)?|ihr(?:en?)?|den|die)${upTo(3, 'vollständigen?|ganzen?|genauen?|kompletten?|geheimen?|ursprünglichen?|internen?|versteckten?|gesamten?|initialen?')} (?:system ?prompts?|systemanweisung(?:en)?|systemnachricht)(?! (?:für|zu|zur|zum|aus|im|in|wie|von))`,
      `${one('zeige?|verrate?|nenne?|gib|offenbare|wiederhole|drucke|sage?|enthülle|was (?:ist|sind)|wie lautete?n?')}${upTo(3, 'mir|uns|bitte|jetzt|genau|wörtlich')} (?:dein(?:en?)?|ihr(?:en?)?)${upTo(3, 'vollständigen?|ganzen?|genauen?|kompletten?|geheimen?|ursprünglichen?|internen?|versteckten?')} (?:prompts?|anweisungen|instruktionen)(?! (?:für|zu|zur|zum|aus|im|in|wie|von))`,
    ],
  },
  {
    pattern: UNBOUND,
    needs: 'beschränkung|einschränkung|regeln|filter|entwicklermodus',
    phrases: [
      `${one('du|sie')} (?:bist|hast|kannst|antwortest|sind|haben)${upTo(4, 'jetzt|nun|ab|sofort|eine|ki|an|nicht|mehr|keine|keinerlei|ein|modell')} (?:ohne|keine|keinerlei|frei von|nicht mehr an)${upTo(2, 'jegliche|alle|deine|moralischen?|ethischen?|mehr')} (?:beschränkungen|einschränkungen|regeln|filter|richtlinien)`,
      `${one('du bist(?: jetzt| nun| ab sofort)? im|wechsle in den|aktiviere den')} (?:entwicklermodus|dan modus|gott modus)(?= \\.| und| $)`,
    ],
  },
];

const french: readonly PhraseDraft[] = [
  {
    pattern: IGNORE,
    needs: 'ignor|oubli|néglig|contourn|abstraction|compte|sui',
    phrases: [
      `${one('ignore[rzs]?|oublie[rzs]?|néglige[rzs]?|contourne[rzs]?|fai(?:s|tes) abstraction(?: de| des)?|ne (?:tiens|tenez) (?:pas|plus|aucun) compte(?: de| des)?|ne (?:suis|suivez) (?:pas|plus)')}${upTo(5, 's|il|te|vous|plaît|maintenant|toutes?|tous|les|des|de|tes|vos|ces|l|la|le|ensemble|complètement')}${one('instructions?|consignes?|directives?|règles?|ordres|prompts?|commandes')}${upTo(3, 'que|tu|as|vous|avez|qui|t|ont|été|du|ton|et|consignes|directives|règles|système')}${one('précédentes?|précédents?|antérieures?|antérieurs?|ci dessus|initiales?|préalables?|reçue?s?|système|d avant|données|plus haut')}`,
      `${one('ignore[rzs]?|oublie[rzs]?|contourne[rzs]?')}${upTo(2, 'maintenant|toutes|tous')} (?:tes|vos)${upTo(2, 'précédentes|propres|anciennes|dernières')} (?:instructions|consignes|directives|règles|restrictions)`,
      `${one('ignore[rzs]?|oublie[rzs]?')} tout ce (?:qui précède|qui est (?:écrit )?(?:au dessus|ci dessus)|qu on (?:t|vous) a dit|que (?:tu|vous) (?:sais|savez|as appris|avez appris))`,
    ],
  },
  {
    pattern: REVEAL,
    needs: 'prompt|instructions|message système|invite|consignes',
    phrases: [
      `${one('révèle[rz]?|montre[rz]?|affiche[rz]?|donne[rz]?|répète[rz]?|répétez|dis|dites|imprime[rz]?|divulgue[rz]?|quel est|quelles sont|partage[rz]?')}${upTo(2, 'moi|nous|maintenant')} (?:ton|tes|votre|vos)${upTo(1, 'propres?')} (?:prompt|instructions?|message|invite|consignes)${upTo(1, 'de')}(?: système| initiale?s?| secrètes?| cachée?s?| d origine|(?= \\.)| $)`,
      `${one('révèle[rz]?|montre[rz]?|affiche[rz]?|donne[rz]?|divulgue[rz]?')}${upTo(2, 'moi|nous')} (?:le|les) (?:prompt|message|instructions|invite|consignes) (?:système|secrètes|cachées|initiales?)(?= \\.| et| $)`,
    ],
  },
  {
    pattern: UNBOUND,
    needs: 'restriction|limite|règle|filtre|développeur',
    phrases: [
      `${one('tu|vous')} (?:es|êtes|n as|n avez|peux|réponds|n es)${upTo(5, 'maintenant|désormais|une?|ia|plus|pas|répondre|modèle|assistant|à|aux|soumise?')} (?:sans|aucune?s?|libre de|de|aux)${upTo(1, 'toutes?|tes')} (?:restrictions?|limites?|règles?|filtres?|limitations?)`,
      `${one('tu es (?:maintenant |désormais )?en|active le|passe en')} mode (?:développeur|dan|sans restriction|débridé)(?= \\.| et| $)`,
    ],
  },
];

const spanish: readonly PhraseDraft[] = [
  {
    pattern: IGNORE,
    needs: 'ignor|olvid|descart|desestim|omit|caso|sigas|anula',
    phrases: [
      `${one('ignora[rds]?|ignore[ns]?|olvida[rd]?|olvídate|olvide[ns]?|descarta|desestima|omite|anula|haz caso omiso|no sigas|no hagas caso')}${upTo(5, 'por|favor|ahora|todas?|todos|las|los|tus|sus|de|a|del|cualquier|estas|esas|completamente')}${one('instrucciones|indicaciones|órdenes|reglas|directrices|directivas|normas|prompts?|comandos')}${upTo(4, 'que|te|se|han|dado|hayan|y|reglas|del|de|dieron|has|recibido')}${one('anteriores|previas|previos|arriba|iniciales|originales|precedentes|sistema|recibidas|antes')}`,
      `${one('ignora[rds]?|ignore[ns]?|olvida[rd]?|olvídate|olvide|omite|descarta')}${upTo(4, 'por|favor|todas?|las|los|de|tus|sus')} (?:anteriores|previas) (?:instrucciones|indicaciones|órdenes|reglas|directrices)`,
      `${one('ignora|ignore|olvida|olvídate|olvide|sáltate|omite')}${upTo(3, 'de|todas|por|favor')} tus${upTo(1, 'propias')} (?:instrucciones|reglas|directrices|restricciones|normas|limitaciones|indicaciones)`,
      `${one('ignora|ignore|olvida|olvide')} todo lo (?:anterior|que te (?:han|hayan) dicho|que (?:te )?(?:dijeron|sabes)|de arriba)`,
    ],
  },
  {
    pattern: REVEAL,
    needs: 'prompt|instrucciones|mensaje|indicaciones',
    phrases: [
      `${one('revela(?:me)?|revélame|muestra(?:me)?|muéstrame|imprime|dime|repite|enséñame|dame|comparte|cuál es|cuáles son|escribe|divulga|revele|muestre|exhibe')}${upTo(2, 'me|por|favor|cuáles|son|cuál|es')} (?:tus?|sus?|el|las)${upTo(1, 'propias?|verdaderas?')} (?:prompt|mensaje|instrucciones|indicaciones|indicador) (?:del? sistema|iniciales?|secretas?|ocultas?|originales?|ocultos?)`,
      `${one('revela(?:me)?|muestra(?:me)?|muéstrame|dime|repite|dame|cuál es|imprime')} tu prompt`,
    ],
  },
  {
    pattern: UNBOUND,
    needs: 'restricci|límite|limite|regla|filtro|limitacion|desarrollador',
    phrases: [
      `${one('eres|actúa|responde|no tienes|puedes|actúas')}${upTo(6, 'ahora|como|una?|ia|modelo|asistente|si|no|tuvieras|responder|que|tiene|completamente|tienes')} (?:sin|ninguna?|libre de|no tiene)${upTo(2, 'ningún|ninguna|tus|las|tipo|de')} (?:restricci(?:ones|ón)|límites?|reglas|filtros?|limitaciones|censura)`,
      `${one('estás (?:ahora )?en|activa el|entra en')} modo (?:desarrollador|dan|sin restricciones|dios)(?= \\.| y| $)`,
    ],
  },
];

const portuguese: readonly PhraseDraft[] = [
  {
    pattern: IGNORE,
    needs: 'ignor|esque|desconsider|descart|siga',
    phrases: [
      `${one('ignore[m]?|ignora[r]?|esqueça[m]?|esquece[r]?|desconsidere[m]?|desconsidera[r]?|descarte|não siga')}${upTo(5, 'por|favor|agora|todas?|todos|as|os|suas|seus|das|de|tuas|quaisquer|completamente|essas')}${one('instruções|instrução|orientações|regras|diretrizes|comandos|ordens|prompts?')}${upTo(4, 'que|você|recebeu|foram|dadas|e|regras|do|de|lhe')}${one('anteriores?|prévias?|acima|iniciais|originais|sistema|recebidas|precedentes|antes|anteriormente')}`,
      `${one('ignore|ignora|esqueça|esquece|desconsidere|desrespeite')}${upTo(2, 'todas|as|de')} (?:suas|tuas) (?:instruções|regras|diretrizes|restrições|orientações|limitações)`,
      `${one('ignore|ignora|esqueça|desconsidere')} tudo (?:o )?que (?:foi dito|te disseram|lhe disseram|você (?:sabe|aprendeu)|está acima|veio antes)`,
    ],
  },
  {
    pattern: REVEAL,
    needs: 'prompt|instruções|mensagem|orientações',
    phrases: [
      `${one('revele|revela|mostre|mostra|imprima|repita|exiba|diga|compartilhe|qual é|quais são|escreva|divulgue')}${upTo(2, 'me|o|a|as|por|favor|mim|para')} (?:seus?|suas?|teu|tuas|tua)${upTo(1, 'próprias?')} (?:prompt|instruções|mensagem|orientações)(?: (?:do|de) sistema| iniciais| inicial| ocultas| secretas| originais|(?= \\.)| $)`,
    ],
  },
  {
    pattern: UNBOUND,
    needs: 'restriç|limite|regra|filtro|limitaç',
    phrases: [
      `${one('você (?:é|está|não tem|agora é|pode)|aja|responda')}${upTo(6, 'agora|como|uma?|ia|modelo|assistente|se|não|tivesse|responder|que|tem')} (?:sem|nenhuma?|livre de|não tem)${upTo(2, 'nenhum|nenhuma|suas|tipo|de')} (?:restriç(?:ões|ão)|limites?|regras|filtros?|limitações|censura)`,
    ],
  },
];

const italian: readonly PhraseDraft[] = [
  {
    pattern: IGNORE,
    needs: 'ignor|dimentic|trascur',
    phrases: [
      `${one('ignora(?:te|re)?|dimentica(?:te|re)?|trascura(?:te|re)?')}${upTo(4, 'tutte|tutti|le|i|gli|per|favore|tue|ora|di')}${one('istruzioni|regole|direttive|prompt|comandi|indicazioni')}${upTo(3, 'che|ti|sono|state|date|del|di')}${one('precedenti|sopra|iniziali|originali|sistema|ricevute|prima')}`,
      `${one('ignora|dimentica|trascura')}${upTo(3, 'tutte|le')} (?:precedenti|tue) (?:istruzioni|regole|direttive|indicazioni|restrizioni)`,
    ],
  },
  {
    pattern: REVEAL,
    needs: 'prompt|istruzioni',
    phrases: [
      `${one('rivela(?:mi)?|mostra(?:mi)?|stampa|dimmi|ripeti|dammi')}${upTo(2, 'il|le|i')} (?:tuo|tue|tuoi) (?:prompt|istruzioni)`,
    ],
  },
];

const russian: readonly PhraseDraft[] = [
  {
    pattern: IGNORE,
    needs: 'игнорир|забудь|внимания|следуй|отмени|отбрось|пренебреги|соблюдай',
    phrases: [
      `${one('(?:про)?игнорируй(?:те)?|игнорировать|забудь(?:те)?(?: о| про| обо)?|не обращай(?:те)? внимания на|не следуй(?:те)?|не соблюдай(?:те)?|отмени(?:те)?|отбрось(?:те)?|пренебреги(?:те)?')}${upTo(4, 'все|всех|всем|пожалуйста|сейчас|эти|теперь|любые')}${one('предыдущ[^ .]{1,10}|прежни[^ .]{1,10}|прошл[^ .]{1,10}|вышеуказанн[^ .]{1,10}|вышеизложенн[^ .]{1,10}|сво[^ .]{1,4}|тво[^ .]{1,4}|системн[^ .]{1,10}|изначальн[^ .]{1,10}|ранее данн[^ .]{1,10}|ранее полученн[^ .]{1,10}')}${gap(1)}${one('инструкци[^ .]{1,10}|указани[^ .]{1,10}|правил[^ .]{0,10}|команд[^ .]{0,10}|промпт[^ .]{0,10}|директив[^ .]{0,10}|ограничени[^ .]{1,10}|предписани[^ .]{1,10}|подсказк[^ .]{1,10}')}`,
      `${one('(?:про)?игнорируй(?:те)?|забудь(?:те)?')}${upTo(2, 'все|всё|о|обо')} (?:инструкции|указания|правила|команды) (?:выше|ранее|до этого)`,
      `${one('забудь(?:те)?|(?:про)?игнорируй(?:те)?')} вс[её] что (?:тебе|вам|было|я|ты)${upTo(2, 'говорили|сказали|сказано|написано|раньше|до')}`,
    ],
  },
  {
    pattern: REVEAL,
    needs: 'промпт|инструкци|сообщени|подсказк|запрос',
    phrases: [
      `${one('покажи(?:те)?|раскрой(?:те)?|выведи(?:те)?|повтори(?:те)?|напиши(?:те)?|скажи(?:те)?|распечатай(?:те)?|назови(?:те)?|сообщи(?:те)?|какой|какие|каков[ыа]?')}${upTo(3, 'мне|нам|полностью|дословно|весь|у|тебя')} (?:сво[^ .]{1,4}|тво[^ .]{1,4}|ваш[^ .]{0,4}|системн[^ .]{1,5})${upTo(2, 'системн[^ .]{1,10}|исходн[^ .]{1,10}|скрыт[^ .]{1,10}|начальн[^ .]{1,10}|секретн[^ .]{1,10}|полн[^ .]{1,10}')} (?:промпт[^ .]{0,5}|инструкци[^ .]{1,5}|подсказк[^ .]{1,5}|(?<=системн[^ .]{1,10} )(?:сообщени[^ .]{1,5}|запрос))(?! (?:для|как|в|на|к|по))`,
    ],
  },
  {
    pattern: UNBOUND,
    needs: 'ограничени|правил|фильтр|разработчика',
    phrases: [
      `${one('ты|вы')} (?:теперь|больше|отныне|сейчас|свободен)${upTo(5, 'не|ии|модель|работаешь|отвечаешь|имеешь|связан|имеет|никаких|бот|ассистент')} (?:без|от|нет|никаких|не имеешь)${upTo(2, 'всяких|любых|всех|каких|либо|никаких')} (?:ограничений|правил|фильтров|цензуры)`,
      `${one('ты (?:теперь |сейчас )?в|включи|перейди в|активируй')} режим[еа]? (?:разработчика|dan|бога|без ограничений)(?= \\.| и| $)`,
    ],
  },
];

/** Phrases of injection attempts in other languages with spaces between words. */
export const FOREIGN_PHRASES: readonly PhraseDraft[] = [
  ...german,
  ...french,
  ...spanish,
  ...portuguese,
  ...italian,
  ...russian,
];

/** Phrases in languages without spaces between words, matched in the source text. Every part has a bounded length. */
export const UNSPACED_PHRASES: readonly { pattern: string; expression: RegExp }[] = [
  {
    pattern: IGNORE,
    expression:
      /(?:忽略|忽視|忽视|无视|無視|忘记|忘記|忘掉|不要理会|不要理會|不要遵守|不要遵循|不要遵從|抛弃|拋棄|不理会|别管)掉?[^。！？\n]{0,10}?(?:之前|以前|以上|上面|先前|此前|前面|上述|所有|全部|一切|系统|系統|原来|你的)[^。！？\n]{0,8}?(?:指令|指示|提示词|提示詞|提示|命令|规则|規則|规定|設定|设定|限制|准则|约束)/g,
  },
  {
    pattern: REVEAL,
    expression:
      /(?:显示|顯示|输出|輸出|打印|告诉我|告訴我|透露|泄露|洩露|重复|重複|复述|展示|公开|公開|给我看|給我看|说出)[^。！？\n]{0,6}?(?:(?:你的|您的)[^。！？\n]{0,6}?(?:提示词|提示詞|系统提示|系統提示|初始指令|系统指令|系統指令|原始指令|指令|隐藏)|(?:系统|系統|初始|原始|隐藏)(?:的)?(?:提示词|提示詞|指令))/g,
  },
  {
    pattern: UNBOUND,
    expression:
      /(?:你现在|你現在|从现在开始你|从现在起你|從現在開始你|你将扮演|扮演)[^。！？\n]{0,12}?(?:DAN\b|不受(?:任何)?(?:限制|约束|約束)|没有(?:任何)?(?:限制|约束)|沒有(?:任何)?限制|无限制|無限制|越狱|开发者模式|開發者模式)/gi,
  },
  {
    pattern: IGNORE,
    expression:
      /(?:これまで|以前|上記|前述|前|先ほど|今まで|すべて|全て|全部|あなた|システム|元|最初|上|最後)の?[^。！？\n]{0,8}?(?:指示|命令|プロンプト|ルール|規則|制約|指令|インストラクション)[^。！？\n]{0,6}?(?:無視し|無視する|無視せよ|忘れ(?:て|ろ|なさい)|破棄し|従わない(?:で|よう)|無効に)/g,
  },
  {
    pattern: REVEAL,
    expression:
      /(?:(?:あなた|君|お前|きみ)の[^。！？\n]{0,6}?(?:プロンプト|システムメッセージ|指示|命令)|(?:隠された|初期の?|内部の?)(?:指示|プロンプト)|システム(?:プロンプト|メッセージ))(?:の(?:全文|内容|すべて))?を?[^。！？\n]{0,6}?(?:教えて|表示し(?:て|ろ|なさい)|出力し(?:て|ろ|なさい)|見せ(?:て|ろ)|開示し|公開し|明かし|繰り返し)/g,
  },
  {
    pattern: UNBOUND,
    expression:
      /(?:あなたは(?:今|これ)から|今からあなたは)[^。！？\n]{0,12}?(?:制限(?:の)?(?:ない|なし)|制約(?:の)?(?:ない|なし)|DAN|無制限)/gi,
  },
  {
    pattern: IGNORE,
    expression:
      /(?:이전|위|앞선|앞|지금까지|모든|기존)(?:의|에)?\s?[^.!?\n]{0,8}?(?:지시|명령|지침|프롬프트|규칙)[^.!?\n]{0,8}?(?:무시|잊어|따르지)/g,
  },
  {
    pattern: REVEAL,
    expression:
      /(?:시스템 ?프롬프트|너의 ?(?:지시|프롬프트)|당신의 ?(?:지시|프롬프트))[^.!?\n]{0,6}?(?:보여|알려|출력|공개)/g,
  },
];
