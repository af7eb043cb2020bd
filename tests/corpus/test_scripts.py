"""Pages in scripts without spaces are dropped; those with a few of their words are not."""

import pytest
from dumps import write_dump
from reading import read

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.corpus.pages import Page
from harp_plugin.corpus.scripts import WITHOUT_SPACES, is_without_spaces
from harp_plugin.errors import HarpError

TEXTS = {
    "Chinese": "维基百科是一个多语言的网络百科全书，任何人都可以编辑其中的条目。",
    "Japanese": "ウィキペディアは、誰でも編集できるフリー百科事典である。東京都千代田区に在る。",
    "Thai": "วิกิพีเดียเป็นสารานุกรมเนื้อหาเสรีหลายภาษาบนเว็บไซต์",
    "Lao": "ວິກິພີເດຍ ເປັນສາລານຸກົມເສລີ ທີ່ທຸກຄົນສາມາດດັດແກ້ໄດ້",
    "Khmer": "វិគីភីឌាជាសព្វវចនាធិប្បាយសេរីដែលអ្នកណាក៏អាចកែប្រែបាន។",
    "Burmese": "ဝီကီပီးဒီးယားသည် အခမဲ့လွတ်လပ်စွယ်စုံကျမ်းတစ်ခုဖြစ်သည်။",
}


@pytest.mark.parametrize("language", TEXTS)
def test_pages_in_such_scripts(language):
    assert is_without_spaces([TEXTS[language], f"Wikipedia {TEXTS[language]} 2010"])
    assert language in WITHOUT_SPACES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "हिन्दी भाषा भारत की एक भाषा है और बहुत लोग इसे बोलते हैं।",
        "한국어는 한국에서 쓰는 말이다. 漢字도 쓴다.",
        "Tiếng Việt là ngôn ngữ của người Việt. 越南語",
        "بێژە کوردی",
        "Beijing (Chinese: 北京; pinyin: Běijīng) is the capital of China, 中华人民共和国.",
        "Tokyo (東京都) is a city. " * 3,
    ],
)
def test_other_pages_stay(text):
    assert not is_without_spaces([text])


def test_more_than_half_of_the_letters():
    assert not is_without_spaces(["中" * 10 + "abcdefghij"])
    assert is_without_spaces(["中" * 11 + "abcdefghij"])
    assert is_without_spaces(["中" * 11 + "abcdefghij" + "0" * 60])


def test_pages_are_counted(tmp_path):
    wikitexts = {name: f"{text} [[A]]" for name, text in TEXTS.items()} | {"A": "A [[b]] text."}
    source = write_dump(tmp_path / "d.xml", wikitexts)
    manifest = build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)
    assert manifest["rows"]["pages"] == 1 and manifest["rows"]["links"] == 1
    assert manifest["drops"] == {WITHOUT_SPACES: len(TEXTS)}


def test_a_build_of_such_pages_alone_fails(tmp_path):
    pages = {"一": TEXTS["Chinese"], "二": TEXTS["Japanese"], "三": TEXTS["Japanese"]}
    source = write_dump(tmp_path / "d.xml", pages, {"1": "一"})
    with pytest.raises(HarpError, match=rf"^nothing came out of d.xml .*{WITHOUT_SPACES}: 3"):
        build_corpus(tmp_path, CorpusOptions(), sources=[source], quiet=True)


def test_no_page_of_a_real_wiki_is_refused(shared_data):
    pages = list(read(shared_data / "wiki" / "ltgwiki-pages-articles.xml.bz2"))
    texts = [
        [section.body.text for section in page.sections] for page in pages if isinstance(page, Page)
    ]
    assert not any(map(is_without_spaces, texts))
